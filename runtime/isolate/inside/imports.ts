/**
 * The imports that an app may make while it runs: its own bundle, and the node built-ins of the allow-list.
 *
 * The bundler has refused other static imports already (runtime/bundle/); those of a bundle that was made elsewhere,
 * and an `import()` of a computed name, are refused here.
 */
import { registerHooks } from "node:module";
import { isAllowedBuiltin } from "../../bundle/builtins.ts";

/** Blocks every other import from now on. */
export function blockImports(): void {
  registerHooks({
    resolve(specifier, context, next) {
      if (isAllowedBuiltin(specifier)) return next(specifier, context);
      // The bundle itself, which only the bootstrap imports: nobody else learns its address.
      if (specifier.startsWith("blob:") && context.parentURL?.startsWith("file:")) {
        return next(specifier, context);
      }
      throw new TypeError(
        `a function can't import "${specifier}": only its bundle and pure node: modules are there`,
      );
    },
  });
}
