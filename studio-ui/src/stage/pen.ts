/** What pictures are drawn with: a canvas on the page, or the text of an SVG file. */

export interface Paint {
  fill?: string;
  stroke?: string;
  width?: number;
  dash?: number[];
  opacity?: number;
}

export interface Lettering {
  colour: string;
  size: number;
  align?: "left" | "center" | "right";
  /** In degrees, around the place. */
  turn?: number;
}

export interface Pen {
  /** Draws within a rectangle only. */
  within(x: number, y: number, width: number, height: number, draw: () => void): void;
  image(
    image: HTMLCanvasElement,
    x: number,
    y: number,
    width: number,
    height: number,
    isSmooth: boolean,
  ): void;
  rectangle(x: number, y: number, width: number, height: number, paint: Paint): void;
  circle(x: number, y: number, radius: number, paint: Paint): void;
  /** Through x, y, x, y, ... */
  path(places: ArrayLike<number>, paint: Paint, isClosed?: boolean): void;
  text(text: string, x: number, y: number, lettering: Lettering): void;
  /**
   * A small drawing that is repeated many times: `draw` makes it around a place, reaching at most so
   * far, and `key` tells it from others.
   */
  stamp(key: string, x: number, y: number, reach: number, draw: StampDrawing): void;
}

export type StampDrawing = (pen: Pen, x: number, y: number) => void;

const MOST_STAMPS = 512;
const stamps = new Map<string, HTMLCanvasElement>();

export const FONT =
  'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif';

export class CanvasPen implements Pen {
  constructor(private readonly context: CanvasRenderingContext2D) {}

  within(x: number, y: number, width: number, height: number, draw: () => void): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  image(
    image: HTMLCanvasElement,
    x: number,
    y: number,
    width: number,
    height: number,
    isSmooth: boolean,
  ): void {
    this.context.imageSmoothingEnabled = isSmooth;
    this.context.imageSmoothingQuality = "high";
    this.context.drawImage(image, x, y, width, height);
  }

  rectangle(x: number, y: number, width: number, height: number, paint: Paint): void {
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.apply(paint);
  }

  circle(x: number, y: number, radius: number, paint: Paint): void {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.apply(paint);
  }

  path(places: ArrayLike<number>, paint: Paint, isClosed = false): void {
    this.context.beginPath();
    for (let index = 0; index + 1 < places.length; index += 2) {
      this.context.lineTo(places[index]!, places[index + 1]!);
    }
    if (isClosed) this.context.closePath();
    this.apply(paint);
  }

  text(text: string, x: number, y: number, lettering: Lettering): void {
    this.context.save();
    this.context.translate(x, y);
    if (lettering.turn) this.context.rotate((lettering.turn * Math.PI) / 180);
    this.context.font = `${lettering.size}px ${FONT}`;
    this.context.fillStyle = lettering.colour;
    this.context.textAlign = lettering.align ?? "left";
    this.context.textBaseline = "alphabetic";
    this.context.fillText(text, 0, 0);
    this.context.restore();
  }

  /**
   * Thousands of points are drawn faster from a bitmap than from paths, and fastest if its pixels
   * are those of the screen: so places are rounded to them.
   */
  stamp(name: string, x: number, y: number, reach: number, draw: StampDrawing): void {
    const scale = window.devicePixelRatio || 1;
    const key = `${name} ${scale}`;
    let image = stamps.get(key);
    if (!image) {
      image = document.createElement("canvas");
      image.width = Math.ceil(2 * reach * scale);
      image.height = image.width;
      const context = image.getContext("2d");
      if (!context) return;
      context.scale(scale, scale);
      draw(new CanvasPen(context), reach, reach);
      if (stamps.size >= MOST_STAMPS) stamps.clear();
      stamps.set(key, image);
    }
    const side = image.width / scale;
    const left = Math.round((x - reach) * scale) / scale;
    const top = Math.round((y - reach) * scale) / scale;
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, left, top, side, side);
  }

  private apply(paint: Paint): void {
    const { context } = this;
    context.globalAlpha = paint.opacity ?? 1;
    if (paint.fill) {
      context.fillStyle = paint.fill;
      context.fill();
    }
    if (paint.stroke) {
      context.strokeStyle = paint.stroke;
      context.lineWidth = paint.width ?? 1;
      context.lineJoin = "round";
      context.lineCap = paint.dash ? "butt" : "round";
      context.setLineDash(paint.dash ?? []);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}
