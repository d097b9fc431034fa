// Starts what makes every page live and quick. Every page works without it.
import { followPage } from "./live.js";
import { watchDialogues } from "./dialogue.js";
import { watchCopying, watchFilters, watchKeys, watchSwitch } from "./frame.js";
import { watchSearch } from "./search.js";
import { keepTimes } from "./times.js";

watchDialogues();
watchFilters();
watchCopying();
watchKeys();
watchSwitch();
watchSearch();
keepTimes();
if ("live" in document.body.dataset) followPage();
