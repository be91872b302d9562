/** Line icons, 16 by 16, in the colour of the text. Always beside a word, so they are hidden from screen readers. */

const SHAPES = {
  ok: "M3 8.5l3.2 3.2L13 5",
  warning: "M8 2.5l6 11H2zM8 6.5v3.2M8 11.6v.4",
  error: "M5.4 2h5.2L14 5.4v5.2L10.6 14H5.4L2 10.6V5.4zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4",
  note: "M8 2a6 6 0 100 12A6 6 0 008 2zM8 7.2v4M8 4.8v.4",
  idle: "M8 3a5 5 0 100 10A5 5 0 008 3z",
  busy: "M8 2a6 6 0 106 6",
  copy: "M6 6h7v8H6zM10 6V2.5H3V11h3",
  search: "M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM10.4 10.4L14 14",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M8 13V3.5M4 7l4-4 4 4",
  down: "M8 3v9.5M4 9l4 4 4-4",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  reload: "M13 8a5 5 0 11-1.6-3.7M13 2.5V5.5h-3",
  download: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  plus: "M8 3v10M3 8h10",
  play: "M4.5 3l8 5-8 5z",
  stop: "M4 4h8v8H4z",
  sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M13 3l-1.2 1.2M4.2 11.8L3 13",
  moon: "M12.8 10.2A5.6 5.6 0 015.8 3.2a5.6 5.6 0 107 7z",
  screen: "M2 3h12v8H2zM6 13.5h4",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 9h5.8l.6-9",
  edit: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7l2.3 2.3",
  link: "M6.8 9.2l2.4-2.4M7.6 4.6l1.2-1.2a2.7 2.7 0 013.8 3.8l-1.2 1.2M8.4 11.4l-1.2 1.2a2.7 2.7 0 01-3.8-3.8l1.2-1.2",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={SHAPES[name]} />
    </svg>
  );
}
