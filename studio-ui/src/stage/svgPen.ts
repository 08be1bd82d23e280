import { FONT, type Lettering, type Paint, type Pen, type StampDrawing } from "./pen";

/** Collects an SVG file. Every text is escaped: names come from tables and scene files. */
export class SvgPen implements Pen {
  private readonly parts: string[] = [];
  private clips = 0;

  constructor(
    private readonly width: number,
    private readonly height: number,
    private readonly paper: string,
  ) {}

  toString(): string {
    const { width, height } = this;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escaped(FONT)}">`,
      `<rect width="${width}" height="${height}" fill="${this.paper}"/>`,
      ...this.parts,
      "</svg>\n",
    ].join("\n");
  }

  within(x: number, y: number, width: number, height: number, draw: () => void): void {
    const id = `clip${this.clips++}`;
    const box = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    this.parts.push(`<clipPath id="${id}"><rect ${box}/></clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push("</g>");
  }

  image(
    image: HTMLCanvasElement,
    x: number,
    y: number,
    width: number,
    height: number,
    isSmooth: boolean,
  ): void {
    const rendering = isSmooth ? "auto" : "pixelated";
    this.parts.push(
      `<image x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" preserveAspectRatio="none" image-rendering="${rendering}" href="${image.toDataURL("image/png")}"/>`,
    );
  }

  rectangle(x: number, y: number, width: number, height: number, paint: Paint): void {
    this.parts.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"${painted(paint)}/>`,
    );
  }

  circle(x: number, y: number, radius: number, paint: Paint): void {
    this.parts.push(
      `<circle cx="${short(x)}" cy="${short(y)}" r="${short(radius)}"${painted(paint)}/>`,
    );
  }

  path(places: ArrayLike<number>, paint: Paint, isClosed = false): void {
    const steps: string[] = [];
    for (let index = 0; index + 1 < places.length; index += 2) {
      steps.push(`${index === 0 ? "M" : "L"}${short(places[index]!)} ${short(places[index + 1]!)}`);
    }
    this.parts.push(`<path d="${steps.join("")}${isClosed ? "Z" : ""}"${painted(paint)}/>`);
  }

  text(text: string, x: number, y: number, lettering: Lettering): void {
    const anchor = { left: "start", center: "middle", right: "end" }[lettering.align ?? "left"];
    const turn = lettering.turn
      ? ` transform="rotate(${lettering.turn} ${short(x)} ${short(y)})"`
      : "";
    this.parts.push(
      `<text x="${short(x)}" y="${short(y)}" font-size="${lettering.size}" fill="${lettering.colour}" text-anchor="${anchor}"${turn}>${escaped(text)}</text>`,
    );
  }

  stamp(_key: string, x: number, y: number, _reach: number, draw: StampDrawing): void {
    draw(this, x, y);
  }
}

function painted(paint: Paint): string {
  let text = ` fill="${paint.fill ?? "none"}"`;
  if (paint.stroke) {
    text += ` stroke="${paint.stroke}" stroke-width="${paint.width ?? 1}" stroke-linejoin="round"`;
    text += paint.dash ? ` stroke-dasharray="${paint.dash.join(" ")}"` : ' stroke-linecap="round"';
  }
  if (paint.opacity !== undefined) text += ` opacity="${short(paint.opacity)}"`;
  return text;
}

function short(value: number): string {
  return String(Number(value.toFixed(2)));
}

/** Text as XML, without the control characters that XML forbids. */
export function escaped(text: string): string {
  return Array.from(text)
    .filter((letter) => letter >= " " || letter === "\n" || letter === "\t")
    .join("")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}
