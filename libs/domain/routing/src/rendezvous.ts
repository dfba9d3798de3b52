/**
 * The instance that owns a key, by rendezvous hashing: everybody who knows the same members names the same owner,
 * and a member that comes or goes moves only the keys that it gains or loses. Undefined without members.
 */
export function ownerOf(key: string, memberIds: Iterable<string>): string | undefined {
  let owner: string | undefined;
  let ownerWeight = -1;
  for (const memberId of memberIds) {
    const weight = hash(`${memberId}/${key}`);
    // Equal weights go to the smaller id, so that the order of the members does not matter.
    if (weight > ownerWeight || (weight === ownerWeight && owner !== undefined && memberId < owner)) {
      owner = memberId;
      ownerWeight = weight;
    }
  }
  return owner;
}

/** FNV-1a over UTF-16 units, then a finaliser that spreads the last characters over all 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
