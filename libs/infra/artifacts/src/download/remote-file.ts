/** One file that can be read over HTTP. */
export interface RemoteFile {
  /** Path inside the model version. */
  readonly path: string;
  readonly url: string;
  /** Headers for the host of `url` only: they are dropped when a redirect leads to another host. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names the file over restarts, without credentials or signed parts: the key of its partial download. */
  readonly identity: string;
}
