/** What axe finds on a page. Owns which findings count: serious ones and worse. */

import axe from "axe-core";
import type { Page } from "playwright-core";

/** The findings, a line each. */
export async function findingsOf(page: Page): Promise<string[]> {
  // Run from outside of the page, which takes no code of others.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary ?? ""}`));
}
