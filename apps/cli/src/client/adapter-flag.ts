/** An adapter as a deployment names it, from `NAME=URI`, or `NAME` alone where the engine has it. */
export function readAdapterFlag(text: string): { readonly name: string; readonly artifact?: string } {
  const equals = text.indexOf('=');
  return equals < 0 ? { name: text } : { name: text.slice(0, equals), artifact: text.slice(equals + 1) };
}
