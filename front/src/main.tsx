import "./css/base.css";
import "./css/shell.css";
import "./css/parts.css";
import "./css/table.css";
import "./css/pages.css";
import "uplot/dist/uPlot.min.css";
import { render } from "preact";
import { App } from "./app";

const root = document.getElementById("app");
if (root === null) throw new Error("index.html has no #app");
root.replaceChildren();
render(<App />, root);
