// Starts the parts of the review pages. Each works alone; without scripts the pages are plain links and forms.
import { startCountdowns } from "./countdown.js";
import { startFocus } from "./focus.js";
import { startGuard } from "./guard.js";
import { startHoldBack } from "./holdback.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { startPicks } from "./picks.js";
import { startProve } from "./prove.js";
import { startReasons } from "./reasons.js";

startCountdowns();
startGuard();
startHoldBack();
startFocus();
startLive();
startPicks();
startProve();
startReasons();
startKeys();
