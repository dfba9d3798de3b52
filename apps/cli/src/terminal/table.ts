import Table from 'cli-table3';

const BORDERLESS = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' };

/** A plain table without lines, which also reads well in a pipe. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const made = new Table({ head: [...head], chars: BORDERLESS, style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] } });
  for (const row of rows) made.push([...row]);
  return made.toString();
}
