import { describe, expect, test } from '@jest/globals';
import { MachineHardwareProbe } from './machine-hardware-probe.js';
import { NvidiaMigDriver } from './nvidia-mig-driver.js';
import { parseIslands } from './nvidia-topology.js';

const LISTED = `+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 1g.10gb         19       13          6:1     |
+-------------------------------------------------------+
|   0  MIG 3g.40gb          9        2          0:4     |
+-------------------------------------------------------+
`;
const DEVICES = `GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)
  MIG 3g.40gb     Device  0: (UUID: MIG-a)
  MIG 1g.10gb     Device  1: (UUID: MIG-b)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)
  MIG 7g.80gb     Device  0: (UUID: MIG-c)
`;
const DETAILS = '<gpu><mig_devices><mig_device><index>0</index><gpu_instance_id>2</gpu_instance_id></mig_device><mig_device><index>1</index><gpu_instance_id>13</gpu_instance_id></mig_device></mig_devices></gpu>';
const TOPOLOGY = `\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tNV12\tSYS\tSYS\t0-31\nGPU1\tNV12\t X \tSYS\tSYS\t0-31\nGPU2\tSYS\tSYS\t X \tPHB\t32-63\nGPU3\tSYS\tSYS\tPHB\t X \t32-63\n`;

/** The tool as far as these tests go; it keeps the commands that change something. */
function pretended(overrides: Readonly<Record<string, string | Error>> = {}) {
  const asked: string[] = [];
  const smi = async (args: readonly string[]): Promise<string> => {
    const command = args.join(' ');
    asked.push(command);
    const override = Object.entries(overrides).find(([prefix]) => command.startsWith(prefix))?.[1];
    if (override instanceof Error) throw override;
    if (override !== undefined) return override;
    if (command.endsWith('-lgi')) return LISTED;
    if (command === '-L') return DEVICES;
    if (command.startsWith('-q -x')) return DETAILS;
    return command === 'topo -m' ? TOPOLOGY : '';
  };
  return { smi, asked };
}

describe('MIG by nvidia-smi', () => {
  test('lists instances by their place, with the UUIDs that engines are told', async () => {
    expect(await new NvidiaMigDriver(pretended().smi).list('GPU-1')).toEqual([{ profile: '1g.10gb', start: 6, uuid: 'MIG-b' }, { profile: '3g.40gb', start: 0, uuid: 'MIG-a' }]);
    const none = pretended({ 'mig -i GPU-1 -lgi': new Error('No GPU instances found: Not Found') });
    expect(await new NvidiaMigDriver(none.smi).list('GPU-1')).toEqual([]);
  });

  test('makes an instance at its place, and takes one away by its number', async () => {
    const { smi, asked } = pretended();
    const driver = new NvidiaMigDriver(smi);
    await driver.create('GPU-1', { profile: '2g.20gb', start: 4 });
    await driver.destroy('GPU-1', { profile: '1g.10gb', start: 6 });
    await driver.destroy('GPU-1', { profile: '4g.40gb', start: 0 });
    expect(asked.filter((command) => /-[cd]g?c?i /.test(command))).toEqual(['mig -i GPU-1 -cgi 2g.20gb:4 -C', 'mig -dci -i GPU-1 -gi 13', 'mig -dgi -i GPU-1 -gi 13']);
  });

  test('says in the words of the tool why a step failed', async () => {
    const { smi } = pretended({ 'mig -dci': new Error('Unable to destroy compute instance: In use by another client') });
    await expect(new NvidiaMigDriver(smi).destroy('GPU-1', { profile: '1g.10gb', start: 6 })).rejects.toThrow('In use by another client');
    const halfGone = pretended({ 'mig -dci': new Error('No compute instances found') });
    await new NvidiaMigDriver(halfGone.smi).destroy('GPU-1', { profile: '1g.10gb', start: 6 });
    expect(halfGone.asked.at(-1)).toBe('mig -dgi -i GPU-1 -gi 13');
  });

  test('the machine tells of islands and instances', async () => {
    const { smi } = pretended({ '--query-gpu': 'GPU-1, NVIDIA A100-SXM4-80GB, 81920, Enabled\nGPU-2, NVIDIA A100-SXM4-80GB, 81920, Disabled\nGPU-3, NVIDIA L4, 23034, [N/A]\n' });
    const { accelerators } = await new MachineHardwareProbe(smi).detect();
    expect(accelerators.slice(1)).toMatchObject([
      { device: 'GPU-1', islandId: 'nvlink-0', mig: { isEnabled: true, instances: [{ uuid: 'MIG-b' }, { uuid: 'MIG-a' }] } }, { device: 'GPU-2', islandId: 'nvlink-0', mig: { isEnabled: false, instances: [] } }, { device: 'GPU-3', islandId: null },
    ]);
  });
});

describe('NVLink islands', () => {
  test('are what NVLink joins, directly or over others', () => {
    expect([...parseIslands(TOPOLOGY)]).toEqual([[0, 'nvlink-0'], [1, 'nvlink-0']]);
    const chain = '\tGPU0\tGPU1\tGPU2\nGPU0\t X \tSYS\tNV4\nGPU1\tSYS\t X \tNV4\nGPU2\tNV4\tNV4\t X \n';
    expect([...parseIslands(chain)].sort()).toEqual([[0, 'nvlink-0'], [1, 'nvlink-0'], [2, 'nvlink-0']]);
    expect(parseIslands('').size).toBe(0);
  });
});
