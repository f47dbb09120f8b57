/** User ids of one crowd: a block for each rush, so that two at the same service do not meet. */
const BLOCK = 10_000_000n;
/** The last id of the last block is below 2^63. */
export const BLOCKS = 2 ** 39;

/** The user id of a buyer by his place in the crowd; `block` is 1 to BLOCKS - 1. */
export function userIdsOf(block: number): (buyer: number) => string {
  const first = BigInt(block) * BLOCK;
  return (buyer) => String(first + BigInt(buyer));
}
