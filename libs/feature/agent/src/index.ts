export * from './agent-config.js';
export * from './agent-ports.js';
export * from './start-agent.js';
