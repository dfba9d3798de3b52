import { Command } from '@oclif/core';
import { authorizationConfig } from '@penstock/infra-nats';

export class NatsUsers extends Command {
  static override summary = 'Print the authorization block of a NATS server that you run yourself: one user for each service, with what it may do.';
  static override description = 'Include it in the server\'s configuration and set the passwords in its environment, as in NATS_GATEWAY_PASSWORD. Give each service its own user in NATS_URL.';

  async run(): Promise<void> {
    await this.parse(NatsUsers);
    this.log(authorizationConfig().trimEnd());
  }
}
