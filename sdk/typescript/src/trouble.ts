/**
 * What goes wrong where no call of the caller's hears of it: in the background, or in a listener of the caller's own.
 *
 * Owns who is told, and that what a listener throws goes no further: it would end the process, or what called it.
 */

/** Is told of trouble that the client lives with. */
export type TroubleListener = (trouble: Error) => void;

/** Where trouble of one client goes. */
export class Troubles {
  readonly #listener: TroubleListener | undefined;

  /** Without a listener it is written to the console. */
  constructor(listener: TroubleListener | undefined) {
    this.#listener = listener;
  }

  /** Tells it. Never throws. */
  tell(trouble: Error): void {
    const listener = this.#listener;
    if (listener === undefined) {
      console.warn("quorate:", trouble);
      return;
    }
    guarded(
      () => listener(trouble),
      (thrown) => console.error("quorate: `onTrouble` threw", thrown, "when it was told", trouble),
    );
  }

  /** Calls a listener of the caller's. What it throws, or rejects with, is trouble. Never throws. */
  call<T>(what: string, listener: (told: T) => unknown, told: T): void {
    guarded(
      () => listener(told),
      (cause) => this.tell(new Error(`${what} threw`, { cause })),
    );
  }
}

function guarded(work: () => unknown, caught: (thrown: unknown) => void): void {
  try {
    const done = work();
    if (done instanceof Promise) {
      done.catch(caught);
    }
  } catch (thrown) {
    caught(thrown);
  }
}
