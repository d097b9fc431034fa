// Starts what makes pages live and quick. Every page works without it.
import { followPage } from "./live.js";
import { startEditors } from "./editor.js";
import { watchDialogues } from "./dialogue.js";
import { watchCopying, watchFilters, watchKeys, watchSwitch } from "./frame.js";
import { watchHeat } from "./heat.js";
import { followLog } from "./log.js";
import { watchPanel } from "./panel.js";
import { openTerminal } from "./terminal.js";
import { watchQuotas } from "./quota.js";
import { watchSearch } from "./search.js";
import { keepTimes } from "./times.js";

watchDialogues();
startEditors();
watchFilters();
watchCopying();
watchKeys();
watchSwitch();
watchSearch();
watchQuotas();
keepTimes();
watchPanel();
watchHeat();
followLog();
openTerminal();
if ("live" in document.body.dataset) followPage();
