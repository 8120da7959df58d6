/**
 * Limits of the app API, with units. The site enforces its own, configurable ones again; these give an app the
 * error before anything leaves the isolate.
 */

/** Bytes of a key as the app wrote it, packed. Deno KV's limit; long keys make every index row long. */
export const KEY_BYTES_MAX = 2048;
/** Bytes of a value's encoding without its tag. 16 times Deno KV's 64 KiB, so that code written for it fits. */
export const VALUE_BYTES_MAX = 1024 * 1024;
/** Mutations of one atomic operation, as in Deno KV; a table's put counts its index rows. */
export const ATOMIC_MUTATIONS_MAX = 1000;
/** Checks of one atomic operation: each is a read at the site; Deno KV allows 100. */
export const ATOMIC_CHECKS_MAX = 100;
/** Bytes of the keys and values of one atomic operation: it must fit one link frame and one commit. */
export const ATOMIC_BYTES_MAX = 4 * 1024 * 1024;
/** Keys of one `getMany`: Deno KV allows 10; one store call carries this many without a second frame. */
export const GET_MANY_MAX = 1000;
/** Keys of one `watch`: each is one subscription at the site. */
export const WATCH_KEYS_MAX = 100;
/** Rows of one page of a list: at 1 KiB a row, one page stays near 1 MiB. */
export const LIST_PAGE_MAX = 1000;
/** Rows fetched at a time where the caller did not say, as in Deno KV. */
export const LIST_PAGE_DEFAULT = 100;
