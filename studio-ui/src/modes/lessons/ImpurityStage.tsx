import { useMemo, useState } from "preact/hooks";
import { ErrorNote, useAnswer } from "../../shell";
import { ImpurityChart } from "../../views/ImpurityChart";

export function ImpurityStage() {
  const [share, setShare] = useState(0.5);
  const request = useMemo(() => ({ kind: "impurity" as const, share }), [share]);
  const answer = useAnswer<"impurity">(request, "impurity");
  return (
    <div class="v-stack" data-testid="impurity-stage">
      <ErrorNote error={answer.error} />
      {answer.value && <ImpurityChart impurity={answer.value} share={share} onShare={setShare} />}
    </div>
  );
}
