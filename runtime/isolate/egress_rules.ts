/** Where an app may go. */
export interface EgressRules {
  /** Hosts that the app declared: `host` (any port) or `host:port`. */
  readonly fetchHosts: readonly string[];
  /** `host:port` that the operator allows although the address is private. */
  readonly privateHosts: readonly string[];
}
