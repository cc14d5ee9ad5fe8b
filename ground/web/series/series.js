// The series: one chart below the other, all over the time of the scrubber.
import { make, say } from "../live/dom.js";
import * as words from "../live/words.js";
import { Chart } from "./chart.js";

const CHARTS = [
  { name: "hits", lines: [["hit_ratio", "hit rate"], ["delivery_ratio", "delivery"]], word: words.ratio, most: 1 },
  { name: "a get takes", lines: [["get_p50_s", "typical"], ["get_p99_s", "slow"]], word: words.seconds },
  { name: "loss", lines: [["loss_ratio", "packets lost"], ["retry_ratio", "sent again"]], word: words.ratio, least: 0.001 },
  { name: "traffic", lines: [["bytes_down_per_s", "down"], ["bytes_up_per_s", "up"]], word: words.rate, least: 1000 },
];

export function startSeries(holder, timeline, player) {
  const rows = CHARTS.map((about) => {
    const values = about.lines.map(([, name], line) => {
      const value = make("b", {}, "–");
      return [value, make("span", { class: `line-${line}` }, name ? `${name} ` : "", value)];
    });
    const plot = make("div", { class: "plot" });
    const row = make("div", { class: "row" });
    row.append(make("div", { class: "name" }, about.name), plot, make("div", { class: "value" }, ...values.map(([, element]) => element)));
    holder.append(row);
    const chart = new Chart(plot, about, (time_ms) => player.seek(time_ms));
    return { about, chart, values: values.map(([value]) => value) };
  });
  const update = () => {
    for (const { about, chart, values } of rows) {
      chart.draw(timeline);
      about.lines.forEach(([name], line) => say(values[line], about.word(timeline.at(timeline.shown_ms, name))));
    }
  };
  timeline.onChange(update);
  player.onChange(update);
  new ResizeObserver(update).observe(holder);
}
