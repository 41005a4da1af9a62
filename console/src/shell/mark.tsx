/** The mark of Quorate: three nodes, two of which agree. Owns its shape; `public/icon.svg` is the same. */

/** The mark. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false">
      <path class="mark-line" d="M12 6.5 6 17.5h12z" />
      <circle class="mark-node" cx="12" cy="6.2" r="3.4" />
      <circle class="mark-node" cx="5.8" cy="17.2" r="3.4" />
      <circle class="mark-rest" cx="18.2" cy="17.2" r="2.9" />
    </svg>
  );
}
