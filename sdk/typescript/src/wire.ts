/**
 * The types of the wire, by name.
 *
 * Owns nothing but the way to the generated file: everything else of the client says `Wire["EntryView"]`.
 */

import type { components, operations } from "./generated/api.js";

/** The JSON objects of API v1, as they are on the wire. */
export type Wire = components["schemas"];

/** The query parameters of an operation, as they are on the wire. */
export type WireQuery<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;
