/**
 * A field for JSON text with the numbers of its lines.
 *
 * Owns the gutter, of which only the lines that can be seen are in the page, and how it is shown where a mistake is. The text is the
 * field's own while somebody types: nothing formats or parses it behind their back.
 */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { JsonFault } from "../json/scan.js";

/** The height of a line, as the style sheet has it. */
const LINE_HEIGHT = 20;

/** What an editor takes. */
export interface EditorProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly isReadOnly: boolean;
  /** Why the text is no JSON, and where. */
  readonly fault?: JsonFault | undefined;
  /** Ctrl-S or Cmd-S. */
  readonly onSave?: () => void;
}

/** An editor. */
export function Editor({ label, text, onText, isReadOnly, fault, onSave }: EditorProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const lines = countLines(text);

  useLayoutEffect(() => {
    // Writing the value moves the caret, so only where it is another one.
    if (field.current !== null && field.current.value !== text) {
      field.current.value = text;
    }
  }, [text]);

  useEffect(() => {
    const element = field.current;
    if (element === null) {
      return;
    }
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);

  const goToFault = () => {
    const element = field.current;
    if (element !== null && fault !== undefined) {
      element.focus();
      element.setSelectionRange(fault.at, fault.at + 1);
      element.scrollTop = Math.max(0, (fault.line - 4) * LINE_HEIGHT);
    }
  };
  return (
    <div class={fault === undefined ? "editor" : "editor faulty"}>
      <div class="editor-field">
        <Gutter lines={lines} top={view.top} height={view.height} faultLine={fault?.line} />
        <textarea
          ref={field}
          aria-label={label}
          aria-invalid={fault !== undefined}
          aria-describedby={fault === undefined ? undefined : "editor-fault"}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          wrap="off"
          dir="ltr"
          readOnly={isReadOnly}
          onInput={(event) => onText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
              event.preventDefault();
              onSave?.();
            }
          }}
        />
      </div>
      {fault !== undefined && (
        <button type="button" class="editor-fault" id="editor-fault" onClick={goToFault}>
          Line {fault.line}, column {fault.column}: {fault.message}
        </button>
      )}
    </div>
  );
}

function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    count += 1;
  }
  return count;
}

interface GutterProps {
  readonly lines: number;
  readonly top: number;
  readonly height: number;
  readonly faultLine: number | undefined;
}

function Gutter({ lines, top, height, faultLine }: GutterProps) {
  const first = Math.floor(top / LINE_HEIGHT);
  const end = Math.min(lines, first + Math.ceil(height / LINE_HEIGHT) + 1);
  return (
    <div class="gutter" aria-hidden="true" style={{ width: `${String(lines).length + 2}ch` }}>
      <div style={{ transform: `translateY(${-(top % LINE_HEIGHT)}px)` }}>
        {Array.from({ length: Math.max(0, end - first) }, (_, at) => (
          <span key={at} class={first + at + 1 === faultLine ? "gutter-line faulty" : "gutter-line"}>
            {first + at + 1}
          </span>
        ))}
      </div>
    </div>
  );
}
