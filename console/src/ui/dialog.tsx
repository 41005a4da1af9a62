/** Windows over the page. Owns the `dialog` element: the focus stays within, Escape and a click beside it close. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.js";

/** What a dialog takes. */
export interface DialogProps {
  readonly title: string;
  /** In the middle, at the right edge, or at the left one. */
  readonly at?: "middle" | "right" | "left" | "top";
  /** Without a visible title: what is in it says enough. */
  readonly isBare?: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly footer?: ComponentChildren;
}

/** A dialog that is open for as long as it is there. */
export function Dialog({ title, at = "middle", isBare = false, onClose, children, footer }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it by itself
    <dialog
      ref={ref}
      class={`dialog dialog-${at}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) {
          onClose();
        }
      }}
    >
      <div class="dialog-box">
        {!isBare && (
          <header class="dialog-head">
            <h2>{title}</h2>
            <button type="button" class="button quiet square" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          </header>
        )}
        <div class="dialog-body">{children}</div>
        {footer !== undefined && <footer class="dialog-foot">{footer}</footer>}
      </div>
    </dialog>
  );
}
