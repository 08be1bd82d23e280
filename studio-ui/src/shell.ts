/** All that the modes use of the shell. */

export {
  type Answers,
  AskError,
  type AskKind,
  type AskOf,
  isSuperseded,
  Superseded,
} from "./connection/answers";
export { ask, cancel, connectionState, uploadTable, welcome } from "./connection/studio";
export type { AskOptions } from "./connection/studioConnection";
export { type Answer, type PictureOptions, useAnswer, usePicture } from "./connection/useAnswer";
export { ErrorNote, Fence, Note, type NoteKind, ProgressNote } from "./errors/notes";
export { classColour } from "./looks/colours";
export { FiguresPanel, type FiguresPanelProps } from "./panel/FiguresPanel";
export { LearnerMenu, type LearnerMenuProps } from "./panel/LearnerMenu";
export { ParameterPanel, type ParameterPanelProps } from "./panel/ParameterPanel";
export { Slider, type SliderProps } from "./panel/Slider";
export { Legend } from "./stage/Legend";
export { type Layers, Stage, type StagePicture, type StageProps } from "./stage/Stage";
export { type StageTool, stageTools } from "./stage/tools";
export { type ModeEntry, mode, openMode } from "./state/mode";
export { counted, formatNumber, formatSeconds, formatShare, ticks } from "./state/numbers";
export {
  canRedo,
  canUndo,
  catalogue,
  changeScene,
  chooseLearner,
  currentLearner,
  defaultsOf,
  learnerFor,
  learnerName,
  learnerNamed,
  parameters,
  redo,
  replaceScene,
  scene,
  setParameter,
  settle,
  task,
  testShare,
  undo,
  visibleParameters,
} from "./state/scene";
export { download } from "./takeaway/download";
