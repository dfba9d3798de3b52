type Json = Readonly<Record<string, unknown>>;

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1.5rem; color: #1c2430; background: #fff }
h1 { margin-bottom: 0 } h2 { margin-top: 2rem; border-bottom: 1px solid #d5dbe3 }
details { border: 1px solid #d5dbe3; border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem }
summary { cursor: pointer } code, pre { font: 13px/1.45 ui-monospace, monospace } pre { overflow-x: auto; background: #f4f6f9; padding: .6rem; border-radius: 4px }
.method { display: inline-block; min-width: 4rem; font-weight: 600 } .muted { color: #5a6675 }
table { border-collapse: collapse } td, th { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top }
@media (prefers-color-scheme: dark) { body { background: #12161c; color: #dde3ea } details, h2 { border-color: #323b47 } pre { background: #1b212a } .muted { color: #93a0b0 } }
`;

/** An OpenAPI document as one page without scripts: routes by tag, each with what it takes and gives. */
export function renderDocsPage(document: Json): string {
  const info = document['info'] as { title: string; description: string };
  const operations = Object.entries(document['paths'] as Record<string, Record<string, Json>>)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation, tag: String((operation['tags'] as string[])[0]) })));
  const groups = [...new Set(operations.map(({ tag }) => tag))];
  const body = groups.map((tag) => `<h2>${escapeHtml(tag)}</h2>${operations.filter((entry) => entry.tag === tag).map(({ path, method, operation }) => renderOperation(path, method, operation)).join('')}`).join('');
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(info.title)}</title><style>${STYLE}</style></head>`
    + `<body><h1>${escapeHtml(info.title)}</h1><p>${escapeHtml(info.description)} Send your key as <code>Authorization: Bearer …</code>. The same as <a href="/docs/openapi.json">OpenAPI document</a>.</p>${body}</body></html>`;
}

function renderOperation(path: string, method: string, operation: Json): string {
  const security = operation['security'] as unknown[];
  const parts = [
    security.length === 0 ? '<p class="muted">Open to everybody.</p>' : '',
    renderParameters((operation['parameters'] as Json[] | undefined) ?? []),
    renderBody('Body', (operation['requestBody'] as Json | undefined)?.['content']),
    ...Object.entries(operation['responses'] as Record<string, Json>).map(([status, response]) => renderBody(status === 'default' ? 'Errors' : `Answer ${status}`, response['content'])),
  ];
  return `<details><summary><span class="method">${method.toUpperCase()}</span> <code>${escapeHtml(path)}</code> <span class="muted">${escapeHtml(String(operation['summary']))}</span></summary>${parts.join('')}</details>`;
}

function renderParameters(parameters: readonly Json[]): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map((parameter) => `<tr><td><code>${escapeHtml(String(parameter['name']))}</code></td><td>${escapeHtml(String(parameter['in']))}${parameter['required'] === true ? ', required' : ''}</td><td><code>${escapeHtml(JSON.stringify(parameter['schema']))}</code></td></tr>`);
  return `<table><tr><th>Parameter</th><th>Where</th><th>Shape</th></tr>${rows.join('')}</table>`;
}

function renderBody(title: string, content: unknown): string {
  return Object.entries((content ?? {}) as Record<string, Json>).map(([type, media]) => {
    const schema = media['schema'] === undefined ? '' : `<pre>${escapeHtml(JSON.stringify(media['schema'], undefined, 2))}</pre>`;
    return `<p><strong>${title}</strong> <span class="muted">${escapeHtml(type)}</span></p>${schema}`;
  }).join('');
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
