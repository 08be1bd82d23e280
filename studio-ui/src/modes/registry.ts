import "./modes.css";
import type { ModeEntry } from "../state/mode";
import { CompareMode } from "./compare/CompareMode";
import { LessonsMode } from "./lessons/LessonsMode";
import { MapMode } from "./map/MapMode";
import { StepsMode } from "./steps/StepsMode";
import { openNamedFile } from "./table/openTable";
import { TableMode } from "./table/TableMode";
import { TreeMode } from "./tree/TreeMode";

/** The modes beside the playground, in the order of their tabs. */
export const MODES: ModeEntry[] = [
  { name: "steps", title: "Steps", component: StepsMode },
  { name: "compare", title: "Compare", component: CompareMode },
  { name: "tree", title: "Tree", component: TreeMode },
  { name: "map", title: "Map", component: MapMode },
  { name: "lessons", title: "Lessons", component: LessonsMode },
  { name: "table", title: "Own data", component: TableMode },
];

openNamedFile();
