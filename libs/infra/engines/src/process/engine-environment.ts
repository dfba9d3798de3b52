/** Names that an engine may see. Everything else stays with the agent, whose environment holds credentials. */
const PASSED_NAMES = [
  'PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'PYTHONHOME', 'PYENV_ROOT', 'PYENV_VERSION', 'CUDA_HOME', 'NVIDIA_VISIBLE_DEVICES',
] as const;

/** Environment of an engine's process; `device` is all that it sees of the GPUs. */
export function engineEnvironment(device: string | null): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {};
  for (const name of PASSED_NAMES) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  if (device !== null) environment['CUDA_VISIBLE_DEVICES'] = device;
  return environment;
}
