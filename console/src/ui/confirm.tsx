/** Asks before something is done. Owns the one question that is open at a time. The text of a question names exactly what will happen. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.js";

/** A question. */
export interface Question {
  readonly title: string;
  /** What will happen, in sentences. */
  readonly body: ComponentChildren;
  /** The words on the button that does it: a verb and what it is done to. */
  readonly action: string;
  /** The words on the other button, where `Cancel` could be taken for the action. */
  readonly otherwise?: string;
  readonly isDangerous?: boolean;
}

const open = signal<(Question & { answer(yes: boolean): void }) | undefined>(undefined);

/** Asks, and resolves with the answer. */
export function confirm(question: Question): Promise<boolean> {
  open.peek()?.answer(false);
  return new Promise((resolve) => {
    open.value = {
      ...question,
      answer: (yes) => {
        open.value = undefined;
        resolve(yes);
      },
    };
  });
}

/** Shows the question that is open. Once in a page. */
export function Confirming() {
  const question = open.value;
  if (question === undefined) {
    return null;
  }
  return (
    <Dialog
      title={question.title}
      onClose={() => question.answer(false)}
      footer={
        <>
          <button type="button" class="button" onClick={() => question.answer(false)}>
            {question.otherwise ?? "Cancel"}
          </button>
          <button
            type="button"
            class={`button ${question.isDangerous ? "danger" : "primary"}`}
            onClick={() => question.answer(true)}
          >
            {question.action}
          </button>
        </>
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <div class="prose" tabIndex={0}>
        {question.body}
      </div>
    </Dialog>
  );
}
