import { type Player, SPEEDS } from "./usePlayer";

const ICONS = {
  first: "M4 4h2v12H4zM16 4v12l-9-6z",
  back: "M14 4v12l-8-6z",
  play: "M6 3v14l11-7z",
  pause: "M5 4h4v12H5zM11 4h4v12h-4z",
  next: "M6 4v12l8-6z",
  last: "M4 4v12l9-6zM14 4h2v12h-2z",
};

/** Buttons, a slider and the speed of a player. */
export function Transport(props: { player: Player; last: number }) {
  const { player, last } = props;
  const { number } = player;
  return (
    <div class="transport" role="group" aria-label="Player">
      <div class="transport-buttons">
        <Button
          icon="first"
          name="To the beginning"
          isOff={number === 0}
          onClick={() => player.seek(0)}
        />
        <Button
          icon="back"
          name="One step back"
          isOff={number === 0}
          onClick={() => player.seek(number - 1)}
        />
        <Button
          icon={player.isPlaying ? "pause" : "play"}
          name={player.isPlaying ? "Pause" : "Play"}
          id="play"
          isOff={last === 0}
          isMain
          onClick={player.toggle}
        />
        <Button
          icon="next"
          name="One step on"
          isOff={number === last}
          onClick={() => player.seek(number + 1)}
        />
        <Button
          icon="last"
          name="To the end"
          isOff={number === last}
          onClick={() => player.seek(last)}
        />
      </div>
      <input
        class="transport-slider"
        type="range"
        min="0"
        max={last}
        step="1"
        value={number}
        aria-label="Step"
        aria-valuetext={`step ${number} of ${last}`}
        data-testid="step-slider"
        onInput={(event) => player.seek(Number(event.currentTarget.value))}
      />
      <output class="transport-number v-number" data-testid="step-number">
        {`${number} / ${last}`}
      </output>
      <label class="transport-speed">
        <span class="v-hidden">Speed</span>
        <select
          value={String(player.speed)}
          data-testid="step-speed"
          onChange={(event) => player.setSpeed(Number(event.currentTarget.value))}
        >
          {SPEEDS.map((speed) => (
            <option key={speed} value={String(speed)}>{`${speed} a second`}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Button(props: {
  icon: keyof typeof ICONS;
  name: string;
  id?: string;
  isOff: boolean;
  isMain?: boolean;
  onClick: () => void;
}) {
  return (
    <button
      type="button"
      class={props.isMain ? "transport-button is-main" : "transport-button"}
      aria-label={props.name}
      title={props.name}
      // Not `disabled`: a button that loses the focus at the end takes the keyboard away.
      aria-disabled={props.isOff}
      data-testid={`step-${props.id ?? props.icon}`}
      onClick={() => !props.isOff && props.onClick()}
    >
      <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
        <path d={ICONS[props.icon]} />
      </svg>
    </button>
  );
}
