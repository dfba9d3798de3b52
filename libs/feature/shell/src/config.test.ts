import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { ConfigError, loadConfig, serviceConfig } from './config.js';

const schema = serviceConfig.extend({ TOKEN: z.string().min(8) });

describe('configuration of a service', () => {
  test('reads the environment once, with defaults and numbers', () => {
    expect(loadConfig(schema, { TOKEN: 'long-enough', HTTP_PORT: '8080', UNRELATED: 'x' })).toEqual({ HTTP_HOST: '127.0.0.1', HTTP_PORT: 8080, HTTP_REUSE_PORT: false, DRAIN_TIMEOUT_MS: 15_000, LOG_LEVEL: 'info', TOKEN: 'long-enough' });
  });

  test('an empty variable counts as not set', () => {
    expect(loadConfig(schema, { TOKEN: 'long-enough', HTTP_PORT: '' }).HTTP_PORT).toBe(0);
  });

  test('NAME_FILE names a file that holds the value', () => {
    expect(loadConfig(schema, { TOKEN_FILE: '/run/secrets/token' }, (path) => `secret from ${path}\n`).TOKEN).toBe('secret from /run/secrets/token');
  });

  test('every wrong variable is named, no value is shown', () => {
    const load = (): unknown => loadConfig(schema, { TOKEN: 'short', HTTP_PORT: '99999' });
    expect(load).toThrow(ConfigError);
    expect(load).toThrow(/HTTP_PORT.*TOKEN/);
    expect(load).not.toThrow(/short|99999/);
  });
});
