"""Serves one ONNX file from Triton's Python backend with ONNX Runtime; Triton's own backend for it is not in the wheel."""

import json

import numpy as np
import onnxruntime as ort
import triton_python_backend_utils as pb_utils

TYPES = {
    "tensor(bool)": "TYPE_BOOL", "tensor(uint8)": "TYPE_UINT8", "tensor(uint16)": "TYPE_UINT16", "tensor(uint32)": "TYPE_UINT32", "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8", "tensor(int16)": "TYPE_INT16", "tensor(int32)": "TYPE_INT32", "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16", "tensor(float)": "TYPE_FP32", "tensor(double)": "TYPE_FP64", "tensor(string)": "TYPE_STRING",
}


def open_session(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def parameter(config, name, fallback=None):
    return config.get("parameters", {}).get(name, {}).get("string_value", fallback)


def describe(value, is_batched):
    lengths = [length if isinstance(length, int) and length >= 0 else -1 for length in value.shape]
    return {"name": value.name, "data_type": TYPES[value.type], "dims": lengths[1:] if is_batched else lengths}


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        config = auto_complete_model_config.as_dict()
        batch = int(parameter(config, "batch", "0"))
        session = open_session(parameter(config, "onnx"), 1)
        auto_complete_model_config.set_max_batch_size(batch)
        for value in session.get_inputs():
            auto_complete_model_config.add_input(describe(value, batch > 0))
        for value in session.get_outputs():
            auto_complete_model_config.add_output(describe(value, batch > 0))
        return auto_complete_model_config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.session = open_session(parameter(config, "onnx"), int(parameter(config, "threads", "1")))
        self.is_batched = int(parameter(config, "batch", "0")) > 0
        self.inputs = [value.name for value in self.session.get_inputs()]
        self.texts = {value.name for value in self.session.get_inputs() if value.type == "tensor(string)"}

    def execute(self, requests):
        if self.is_batched and len(requests) > 1:
            together = self.execute_together(requests)
            if together is not None:
                return together
        return [self.execute_one(request) for request in requests]

    def values_of(self, request, name):
        values = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
        return np.vectorize(lambda element: element.decode("utf-8"), otypes=[object])(values) if name in self.texts and values.size > 0 else values

    def execute_one(self, request):
        try:
            names = list(request.requested_output_names())
            results = self.session.run(names, {name: self.values_of(request, name) for name in self.inputs})
            return self.response_of(names, results)
        except Exception as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("onnx runtime error: " + str(error)))

    def execute_together(self, requests):
        """Runs requests that Triton batched as one; None when they cannot be joined or fail, so that each is answered for itself."""
        try:
            rows = [self.values_of(request, self.inputs[0]).shape[0] for request in requests]
            feeds = {name: np.concatenate([self.values_of(request, name) for request in requests]) for name in self.inputs}
            names = sorted({name for request in requests for name in request.requested_output_names()})
            results = dict(zip(names, self.session.run(names, feeds)))
            if any(len(result) != sum(rows) for result in results.values()):
                return None
        except Exception:
            return None
        responses, start = [], 0
        for request, count in zip(requests, rows):
            wanted = list(request.requested_output_names())
            responses.append(self.response_of(wanted, [results[name][start:start + count] for name in wanted]))
            start += count
        return responses

    def response_of(self, names, results):
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor(name, encoded(result)) for name, result in zip(names, results)])


def encoded(result):
    if result.dtype != np.object_ or result.size == 0:
        return result
    return np.vectorize(lambda element: element.encode("utf-8") if isinstance(element, str) else element, otypes=[object])(result)
