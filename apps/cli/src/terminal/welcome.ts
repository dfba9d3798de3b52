export interface Welcome {
  readonly url: string;
  readonly apiKey: string;
  readonly model: string;
  readonly standInReason: string | undefined;
  readonly seconds: number;
  readonly logFile: string | undefined;
}

/** What `up` prints once everything is there: enough to send the first request by copying. */
export function welcome({ url, apiKey, model, standInReason, seconds, logFile }: Welcome): string {
  const lines = [
    '',
    `Penstock is up after ${seconds.toFixed(1)} s.${logFile === undefined ? '' : ` Log: ${logFile}`}`,
    ...(standInReason === undefined ? [] : [`NOTE: ${model} has random weights; its answers are noise.`]),
    '',
    `  base URL   ${url}/v1`,
    `  API key    ${apiKey}`,
    `  model      ${model}`,
    '',
    `  curl ${url}/v1/chat/completions -H "Authorization: Bearer ${apiKey}" -H "Content-Type: application/json" \\`,
    `    -d '{"model":"${model}","messages":[{"role":"user","content":"Hello!"}],"stream":true}'`,
    '',
    "  import OpenAI from 'openai';",
    `  const client = new OpenAI({ baseURL: '${url}/v1', apiKey: '${apiKey}' });`,
    `  const answer = await client.chat.completions.create({ model: '${model}', messages: [{ role: 'user', content: 'Hello!' }] });`,
    '',
    'In another terminal, in this folder: npm run penstock -- ps | models | usage | events tail fleet | replay verify',
    'Stop with Ctrl-C.',
  ];
  return lines.join('\n');
}
