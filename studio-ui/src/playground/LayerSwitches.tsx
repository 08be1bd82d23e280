import type { Picture } from "../protocol";
import { ALL_LAYERS, type Layers } from "../stage/layers";

type SurfaceKind = "score" | "probability";

interface LayerSwitchesProps {
  picture: Picture | null;
  layers: Partial<Layers>;
  onLayers: (change: Partial<Layers>) => void;
  surface: SurfaceKind;
  onSurface: (kind: SurfaceKind) => void;
}

const SURFACES: [SurfaceKind, string][] = [
  ["score", "Score"],
  ["probability", "Probability"],
];

/** What of the picture is drawn: only what this picture has. */
export function LayerSwitches(props: LayerSwitchesProps) {
  const { picture } = props;
  const layers = { ...ALL_LAYERS, ...props.layers };
  const offered = offeredLayers(picture);
  return (
    <section class="panel" aria-label="What is drawn" data-testid="layers-panel">
      <h2>What is drawn</h2>
      {picture?.plane && picture.plane.classes.length === 2 && (
        <fieldset class="segments full" aria-label="Colours show">
          {SURFACES.map(([kind, title]) => (
            <button
              key={kind}
              type="button"
              class="segment"
              aria-pressed={props.surface === kind}
              data-testid={`surface-${kind}`}
              onClick={() => props.onSurface(kind)}
            >
              {title}
            </button>
          ))}
        </fieldset>
      )}
      <div class="checks">
        {offered.map(([name, title]) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={layers[name]}
              data-testid={`layer-${name}`}
              onChange={(event) => props.onLayers({ [name]: event.currentTarget.checked })}
            />
            <span>{title}</span>
          </label>
        ))}
      </div>
    </section>
  );
}

function offeredLayers(picture: Picture | null): [keyof Layers, string][] {
  const plane = picture?.plane;
  const curve = picture?.curve;
  const all: [keyof Layers, string, boolean][] = [
    ["surface", "Colours", Boolean(plane)],
    ["margins", plane ? "Margins" : "Band", Boolean(plane?.hasMargins || curve?.low)],
    ["support", "Support vectors", Boolean(plane?.supportKind || curve?.supportKind)],
    ["slack", plane ? "Slack" : "Residuals", Boolean(plane?.slack || curve)],
    ["hulls", "Hulls", Boolean(plane?.hulls)],
    ["regions", "Regions", Boolean(plane && plane.regions.length > 0)],
    ["members", "Members", Boolean(plane?.members || curve?.members)],
    ["weights", "Weights", Boolean(plane?.weight)],
  ];
  return all.filter(([, , isThere]) => isThere).map(([name, title]) => [name, title]);
}
