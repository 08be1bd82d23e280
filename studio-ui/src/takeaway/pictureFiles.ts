/** The picture as a file, in the colours of the page. */

import type { PointMarks } from "../stage/drawPoints";
import { frameOf } from "../stage/frame";
import { type Painting, paintBack, paintFront, pointRadius } from "../stage/painting";
import { CanvasPen, type Pen } from "../stage/pen";
import { SvgPen } from "../stage/svgPen";

const WIDTH = 900;
const PNG_SCALE = 2;

export function svgOf(painting: Painting): string {
  const height = heightOf(painting);
  const pen = new SvgPen(WIDTH, height, painting.palette.paper);
  paint(pen, painting, height);
  return pen.toString();
}

export function pngOf(painting: Painting): Promise<Blob> {
  const height = heightOf(painting);
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH * PNG_SCALE;
  canvas.height = height * PNG_SCALE;
  const context = canvas.getContext("2d");
  if (!context) return Promise.reject(new Error("This browser cannot draw a PNG."));
  context.scale(PNG_SCALE, PNG_SCALE);
  const pen = new CanvasPen(context);
  pen.rectangle(0, 0, WIDTH, height, { fill: painting.palette.paper });
  paint(pen, painting, height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (blob) resolve(blob);
      else reject(new Error("This browser could not write the PNG."));
    }, "image/png");
  });
}

function heightOf(painting: Painting): number {
  return painting.scene.task === "regression" ? Math.round(WIDTH * 0.66) : WIDTH;
}

function paint(pen: Pen, painting: Painting, height: number): void {
  const { scene, picture, layers, palette } = painting;
  const full = { ...painting, isCompact: false, zoom: 1.2 };
  const frame = frameOf(WIDTH, height, scene.view, false, full.zoom);
  const radius = pointRadius(scene.x.length, WIDTH, false, full.zoom);
  const marks: PointMarks = {
    scene,
    picture,
    layers,
    highlighted: [],
    focused: -1,
    hovered: -1,
    radius,
    margins: painting.prepared?.margins ?? [[], []],
  };
  paintBack(pen, frame, full);
  paintFront(pen, frame, marks, palette);
}
