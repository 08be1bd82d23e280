import type { Scene } from "../../protocol";
import { catalogue } from "../../shell";
import { ContenderView } from "./ContenderView";
import { CHANNELS, type Contender, nextContender, replaced } from "./contenders";

/** Two to four learners on the same points, side by side. */
export function CompareStage(props: {
  scene: Scene;
  contenders: Contender[];
  channel?: string;
  /** Whether parameters begin folded. */
  isFolded?: boolean;
  onContenders: (all: Contender[]) => void;
  onEdit: (scene: Scene, key: string | null) => void;
}) {
  const { scene, contenders } = props;
  const add = () => {
    const next = nextContender(contenders, scene.task, catalogue.value?.learners ?? []);
    if (next) props.onContenders([...contenders, next]);
  };
  return (
    <div class="compare" data-testid="compare-stage">
      <div class={`compare-columns n${contenders.length}`}>
        {contenders.slice(0, CHANNELS.length).map((own, k) => {
          const name = CHANNELS[k] ?? "a";
          return (
            <ContenderView
              key={name}
              scene={scene}
              contender={own}
              name={name}
              channel={`${props.channel ?? ""}${name}`}
              onEdit={props.onEdit}
              isFolded={props.isFolded}
              onChange={(next) => props.onContenders(replaced(contenders, k, next))}
              onRemove={
                contenders.length > 2
                  ? () => props.onContenders(replaced(contenders, k, null))
                  : undefined
              }
            />
          );
        })}
      </div>
      {contenders.length < CHANNELS.length && (
        <button type="button" class="v-tool" data-testid="add-contender" onClick={add}>
          + Another learner
        </button>
      )}
    </div>
  );
}
