import { describe, expect, test } from '@jest/globals';
import { fileUploadedV1 } from '@penstock/contract-events';
import { toFileObject } from './batch-object.js';
import { fileDecider, type FileCommand, type FileState } from './file.js';

const NOW = Date.parse('2026-11-29T12:00:00.000Z');
const data = fileUploadedV1.schema.parse(fileUploadedV1.example);
const register: FileCommand = { kind: 'register', nowMs: NOW, data };
const remove: FileCommand = { kind: 'delete', nowMs: NOW, fileId: data.fileId, organisationId: data.organisationId, reason: 'owner' };

function after(...commands: readonly FileCommand[]): FileState | null {
  return commands.reduce<FileState | null>((state, command) => {
    const decision = fileDecider.decide(command, state);
    return decision.kind === 'accepted' ? decision.events.reduce(fileDecider.evolve, state) : state;
  }, null);
}

function codeOf(command: FileCommand, state: FileState | null): string | undefined {
  const decision = fileDecider.decide(command, state);
  return decision.kind === 'refused' ? decision.refusal.code : undefined;
}

describe('file', () => {
  test('is registered once with the bytes it keeps', () => {
    const state = after(register);
    expect(state === null ? null : toFileObject(state)).toEqual({
      id: 'file_01', object: 'file', bytes: 1_024, created_at: NOW / 1_000, expires_at: null, filename: 'input.jsonl', purpose: 'batch', status: 'processed', status_details: null,
    });
    expect(fileDecider.decide(register, state)).toEqual({ kind: 'accepted', events: [] });
    expect(codeOf({ kind: 'register', nowMs: NOW, data: { ...data, digest: `sha256:${'b'.repeat(64)}` } }, state)).toBe('already_exists');
  });

  test('is deleted once, and only by its organisation', () => {
    expect(codeOf(remove, null)).toBe('file_not_found');
    expect(codeOf({ ...remove, organisationId: 'org_02' } as FileCommand, after(register))).toBe('file_not_found');
    expect(after(register, remove)?.isDeleted).toBe(true);
    expect(codeOf(remove, after(register, remove))).toBe('file_not_found');
    expect(codeOf(register, after(register, remove))).toBe('already_exists');
  });
});
