/** A line over time. The same numbers stand in the table beside it, so the drawing itself is described in one sentence. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { ago, exact, local, short } from "../lib/format";
import { useSize } from "../lib/hooks";

export interface ChartProps {
  readonly label: string;
  /** Seconds since the epoch, and a value. */
  readonly points: readonly (readonly [at: number, value: number])[];
}

const HEIGHT = 132;
/** Steps of the vertical axis: whole records. */
const WHOLE = Array.from({ length: 18 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Chart({ label, points }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const { width } = useSize(box);
  const enough = points.length > 1;

  useEffect(() => {
    const element = box.current;
    if (element === null || width === 0 || !enough) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(label, width), [[], []], element);
      plot.current.setData(dataOf(points));
    };
    draw();
    addEventListener("themechange", draw);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      removeEventListener("themechange", draw);
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [width, label, enough]);
  useEffect(() => plot.current?.setData(dataOf(points)), [points]);

  return (
    <figure class="chart" aria-label={label}>
      <div ref={box} class="chart-box" aria-hidden="true" />
      <figcaption class={enough ? "hidden" : "soft"}>{enough ? described(points) : `${label}: the line begins when the page was open for a few seconds.`}</figcaption>
    </figure>
  );
}

function described(points: ChartProps["points"]): string {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return "";
  return `${exact(first[1])} at first (${ago(first[0] * 1000, last[0] * 1000)}), ${exact(last[1])} at last, ${exact(Math.max(...points.map(([, value]) => value)))} at most`;
}

function dataOf(points: ChartProps["points"]): uPlot.AlignedData {
  return [points.map(([at]) => at), points.map(([, value]) => value)];
}

function options(label: string, width: number): uPlot.Options {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { show: true, live: true },
    scales: { x: { time: true }, y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [
      { ...axis, size: 24, space: 90, values: (_plot, values) => values.map((at) => local(at * 1000).slice(11, 19)) },
      { ...axis, size: 56, incrs: WHOLE, values: (_plot, values) => values.map((value) => short(Math.round(value))) },
    ],
    series: [
      { label: "Time", value: (_plot, at) => (at === null ? "" : local(at * 1000).slice(0, 19)) },
      { label, stroke: colour("--accent"), width: 1.5, fill: colour("--accent-faint"), points: { show: false }, value: (_plot, value) => (value === null ? "" : exact(Math.round(value))) },
    ],
  };
}
