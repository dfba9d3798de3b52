export * from './engine-sim/engine-sim-driver.js';
export * from './hardware/machine-hardware-probe.js';
export * from './http/http-engine-probe.js';
export * from './llama-cpp/llama-cpp-driver.js';
export * from './node-state/file-engine-records.js';
export * from './onnx/onnx-driver.js';
export * from './triton/triton-driver.js';
export * from './vllm/vllm-driver.js';
