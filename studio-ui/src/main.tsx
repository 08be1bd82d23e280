import "./looks/variables.css";
import "./looks/page.css";
import "./looks/controls.css";
import "./looks/notes.css";
import "./looks/stage.css";
import { effect } from "@preact/signals";
import { render } from "preact";
import { ALL_MODES, App } from "./app";
import { ask, connectionState, startConnection } from "./connection/studio";
import { followTheme } from "./looks/theme";
import { drawFirst } from "./panel/presets";
import { modeFromAddress } from "./state/mode";
import {
  catalogue,
  chooseLearner,
  currentLearner,
  hadStoredScene,
  keepScene,
  learnerFor,
  scene,
} from "./state/scene";

startConnection(); // First of all: it takes the token out of the address bar.
followTheme();
const followAddress = () => modeFromAddress(ALL_MODES.map((entry) => entry.name));
followAddress();
window.addEventListener("hashchange", followAddress);
keepScene();

const root = document.getElementById("app");
if (root) render(<App />, root);

// Another server may offer other learners, so the catalogue is asked for at each welcome.
effect(() => {
  if (connectionState.value === "open") void askCatalogue();
});

async function askCatalogue(): Promise<void> {
  const isFirst = catalogue.peek() === null;
  try {
    catalogue.value = await ask({ kind: "catalogue" });
  } catch (error) {
    console.error(error);
    return;
  }
  if (currentLearner.peek()?.task !== scene.peek().task) {
    const learner = learnerFor(scene.peek().task);
    if (learner) chooseLearner(learner.name);
  }
  if (isFirst && !hadStoredScene) drawFirst();
}
