// The line below the grid: how many tokens of each model the satellites have room for.
import { make } from "../live/dom.js";

/** Models that are named, those whose engines connected last; the others are counted. */
const SHOWN = 4;
const NAME_MAX = 100;
const MEANING = "How many tokens of this model all stores can hold if they hold nothing else. Models share the stores.";

export function startModels(line, state) {
  let told = "";
  state.on("sky newest", () => {
    const models = state.newest?.frame?.models ?? [];
    const now = JSON.stringify(models);
    if (now === told) return;
    told = now;
    line.hidden = models.length === 0;
    const shown = models.slice(-SHOWN).reverse().map(described);
    if (models.length > SHOWN) shown.push(make("span", {}, `and ${models.length - SHOWN} more`));
    line.replaceChildren(...shown);
  });
}

function described({ model, dtype, tokens }) {
  const name = model.length > NAME_MAX ? `${model.slice(0, NAME_MAX)}…` : model;
  return make("span", { title: MEANING }, `holds up to ${tokens.toLocaleString("en")} tokens of `, make("bdi", {}, name), ` (${dtype})`);
}
