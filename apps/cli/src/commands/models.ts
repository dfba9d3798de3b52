import { modelVersionList } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { formatBytes } from '../terminal/format.js';
import { table } from '../terminal/table.js';

export class Models extends ApiCommand {
  static override summary = 'List model versions, with what was read from their artifacts.';
  static override examples = ['<%= config.bin %> models', '<%= config.bin %> models --json'];

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Models);
    const { data } = await this.clientFor(flags).call('GET', '/admin/v1/model-versions', modelVersionList);
    const rows = data.map((model) => [
      model.modelName,
      model.version,
      model.randomWeights ? `${model.status} (random weights)` : model.status,
      model.engine,
      model.precision ?? '-',
      formatBytes(model.totalBytes),
      model.contextTokensMax === null ? '-' : String(model.contextTokensMax),
      model.license ?? '-',
      model.rejection ?? '',
    ]);
    this.log(table(['MODEL', 'VERSION', 'STATUS', 'ENGINE', 'PRECISION', 'SIZE', 'CONTEXT', 'LICENCE', ''], rows));
    return data;
  }
}
