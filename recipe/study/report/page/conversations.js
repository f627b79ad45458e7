"use strict";
// Visits of several turns: who spoke, what each response goes on from.

/** Whether a visit has turns that go on from others. */
const hasTurns = (visit) => visit.rounds.some((each) => each.parents.length);

const countRight = (marks) => [...marks].filter((mark) => mark === "1").length;

/** Say in short what a visit tried: "0: 0/8 → 2: 3/8" by hint levels, "2/8 → guide → 7/8" by turns. */
function path(visit) {
  return visit.rounds.map((each) => {
    const level = hasTurns(visit) && !each.level ? "" : `${each.level}: `;
    const unmarked = each.status !== "none" ? each.status : hasTurns(visit) ? "" : "not graded";
    const outcome = each.marks ? `${countRight(each.marks)}/${each.marks.length}` : unmarked;
    return [each.role === "solver" ? "" : each.role, level + outcome].filter(Boolean).join(" ");
  }).join(" → ");
}

/** Name the column of `path`. */
const triedHead = (visits) => visits.some(hasTurns) ? "turns: right of graded" : "level: right of graded";

/** Say what trains: a hint level, or the roles of several turns. */
function whatTrains(visit) {
  if (visit.level == null) return "-";
  if (!hasTurns(visit)) return `level ${visit.level}`;
  return [...new Set(visit.trained.map((each) => visit.rounds[each.round].role))].join(" + ");
}

/**
 * Return a sample's conversations as [{ count, turns: [{ role, response }] }], equal ones together and the
 * most frequent first; none where nothing goes on from anything. A response that the sample does not hold
 * is null.
 */
function conversationsOf(sample, visit) {
  if (!visit || !hasTurns(visit)) return [];
  const key = ([round, turn]) => `${round} ${turn}`;
  const held = new Map();
  sample.responses.forEach((each, number) => each.turns.forEach((turn) => held.set(key([each.round, turn]), number)));
  const continued = new Set(visit.rounds.flatMap((each) => each.parents.map(key)));
  const found = new Map();
  for (const [number, round] of visit.rounds.entries()) {
    const size = Math.max(round.parents.length, round.marks.length);
    for (let turn = 0; turn < size; turn += 1) {
      if (continued.has(key([number, turn]))) continue;
      const places = [];
      // A parent is always of an earlier round; a damaged file may say otherwise.
      for (let at = [number, turn]; at; ) {
        places.unshift(at);
        const parent = visit.rounds[at[0]].parents[at[1]];
        at = parent && parent[0] < at[0] ? parent : null;
      }
      const name = places.map((at) => `${at[0]}:${held.get(key(at)) ?? "?"}`).join(" ");
      const turns = places.map((at) => ({
        role: visit.rounds[at[0]].role, response: sample.responses[held.get(key(at))] || null,
      }));
      found.set(name, { count: (found.get(name)?.count || 0) + 1, turns });
    }
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

/** Return the shares of right responses in the first and in the last round of each visit. */
function turnShares(all) {
  const share = ({ marks }) => marks ? countRight(marks) / marks.length : null;
  return [["first turn right", 0], ["last turn right", -1]].map(([name, place]) =>
    ({ name, y: all.map((visit) => share(visit.rounds.at(place))) }));
}

/** Show a conversation with its texts in order. */
function conversation({ count, turns }) {
  const told = ({ role, response }) => response && response.reason !== "not_graded" ? `${role} ${response.reason.replaceAll("_", " ")}` : role;
  return el("details", { open: true }, el("summary", {}, `${count} × ${turns.map(told).join(" → ")}`),
    turns.flatMap(({ role, response: each }) => each ? response(each, role) : [el("p", { class: "faint" }, `${role}: found no room in the run's file`)]));
}

if (typeof document === "undefined") module.exports = { path, whatTrains, conversationsOf, turnShares };
