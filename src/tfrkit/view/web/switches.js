// What the server guessed about features, as switches in the address.

import { clear, h, link, visible } from "./dom.js";
import { change, data, on } from "./model.js";
import { GUESSES, listen, state } from "./state.js";
import { t } from "./words.js";

class Switches extends HTMLElement {
	connectedCallback() {
		if (this.box) return;
		this.box = h("details.figure.switches");
		this.append(this.box);
		for (const name of ["set", "guesses"]) on(name, () => this.draw());
		listen(keys => GUESSES.some(key => keys.has(key)) && this.draw());
		this.draw();
	}

	draw() {
		if (!data.set) return;
		const { guesses } = data.set;
		const rows = GUESSES.filter(key => key === "image" || key === "label" || guesses[key].value || guesses[key].options.length || state[key]);
		const shown = key => visible(state[key] === "-" ? t("guess.none") : state[key] || guesses[key].value || t("guess.none"));
		const focus = this.contains(document.activeElement) ? document.activeElement.dataset.key : null;
		const changed = GUESSES.some(key => state[key]);
		clear(this.box,
			h("summary", h("span.figure-name", t("guess.title")), h("span.figure-fact", changed ? t("guess.changed") : "")),
			h("div.switch-rows", rows.map(key => h("label", h("span", t(`guess.${key}`)), key === "shape" ? this.shape(guesses.shape) : this.choice(key, guesses[key])))),
			h("p.note", rows.slice(0, 3).map(key => `${t(`guess.${key}`)}: ${shown(key)}`).join(" · ")),
			changed ? link(() => change(Object.fromEntries(GUESSES.map(key => [key, ""]))), t("guess.reset")) : null);
		if (focus) this.querySelector(`[data-key="${focus}"]`)?.focus();
	}

	choice(key, guess) {
		const options = new Set([...guess.options, ...(state[key] && state[key] !== "-" ? [state[key]] : []), ...(guess.value ? [guess.value] : [])]);
		const canBeNone = key !== "box_order" && key !== "box_units";
		// A choice in the address is the server's answer, too.
		const own = state[key] ? t("guess.automatic") : t("guess.own", { value: visible(guess.value ?? t("guess.none")) });
		return h("select.field", { "data-key": key, onchange: event => change({ [key]: event.target.value }) },
			h("option", { value: "", selected: !state[key] }, own),
			[...options].map(name => h("option", { value: name, selected: state[key] === name }, visible(name))),
			canBeNone ? h("option", { value: "-", selected: state[key] === "-" }, t("guess.none")) : null);
	}

	shape(guess) {
		return h("span.with-list",
			h("input.field", { "data-key": "shape", value: state.shape, placeholder: guess.value ?? "28x28", list: "shapes", spellcheck: "false", onchange: event => change({ shape: event.target.value.trim() }) }),
			h("datalist", { id: "shapes" }, guess.options.map(value => h("option", { value }))));
	}
}

customElements.define("tfr-switches", Switches);
