import { natsServiceNames, permissionsOf } from './service-permissions.js';

/** The operator's user: makes streams, looks at everything. No service runs with it. */
export const OPERATOR_USER = 'penstock';

/**
 * The `authorization` block of a NATS server that operators run themselves: one user for each service with its allow-lists.
 * Passwords come from the server's environment, `$NATS_GATEWAY_PASSWORD` and so on, so that the file holds no secret.
 */
export function authorizationConfig(): string {
  const users = natsServiceNames.map((service) => {
    const { publish, subscribe } = permissionsOf(service);
    return [
      '    {',
      `      user: ${service}`,
      `      password: $${passwordVariable(service)}`,
      '      permissions {',
      `        publish { allow: [\n${list(publish)}\n        ] }`,
      `        subscribe { allow: [\n${list(subscribe)}\n        ] }`,
      '      }',
      '    }',
    ].join('\n');
  });
  const operator = `    { user: ${OPERATOR_USER}, password: $${passwordVariable('operator')} }`;
  return `authorization {\n  users: [\n${[operator, ...users].join('\n')}\n  ]\n}\n`;
}

/** The variable of the server's environment that holds a user's password. */
export function passwordVariable(user: string): string {
  return `NATS_${user.replaceAll('-', '_').toUpperCase()}_PASSWORD`;
}

function list(subjects: readonly string[]): string {
  return subjects.map((subject) => `          ${JSON.stringify(subject)}`).join('\n');
}
