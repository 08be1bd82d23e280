import type { Curve, Plane } from "../protocol";

/** What of the picture is drawn. */
export interface Layers {
  surface: boolean;
  /** The lines at -1 and 1 of a margin machine. */
  margins: boolean;
  /** Thin lines of an ensemble's members. */
  members: boolean;
  hulls: boolean;
  /** Lines from points to their margin; residuals of a regression. */
  slack: boolean;
  regions: boolean;
  /** Weight as size. */
  weights: boolean;
  /** Rings around support vectors. */
  support: boolean;
}

export const ALL_LAYERS: Layers = {
  surface: true,
  margins: true,
  members: true,
  hulls: true,
  slack: true,
  regions: true,
  weights: true,
  support: true,
};

/** A `Picture` or a `Step`. */
export interface StagePicture {
  plane: Plane | null;
  curve: Curve | null;
  isTest?: Uint8Array | null;
}
