/** Runs before the first paint, so that a chosen theme does not flash. */
import { applyTheme } from "./lib/theme";

applyTheme();
