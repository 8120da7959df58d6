/**
 * Static files of apps: collected and compressed where they are deployed from (collect.ts), told by an index
 * (asset_index.ts), served by every site's gateway before the app runs (serve.ts).
 */
export {
  type Asset,
  ASSET_BYTES_MAX,
  ASSET_INDEX_BYTES_MAX,
  type AssetContent,
  contentsOf,
  decodeAssetIndex,
} from "./asset_index.ts";
export { AssetsRefused, collectAssets, type CollectedAssets, type CollectedBlob } from "./collect.ts";
export { type AssetReader, type AssetRequest, serveAsset } from "./serve.ts";
