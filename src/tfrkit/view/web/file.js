// The file of `tfr stats --html`: the statistics page without a server.

import { bdi, clear, drawn, h, toggleTheme, tool, visible } from "./dom.js";
import { draw } from "./report.js";
import { t, use } from "./words.js";

const found = JSON.parse(document.getElementById("report").textContent);
const src = ({ type, data }) => `data:${type};base64,${data}`;

function show(lang) {
	use(found.words, lang);
	document.title = visible(found.title);
	const other = lang === "zh" ? "en" : "zh";
	clear(document.body, h("main.stats-page", h("p.report-tools", tool("moon", t("theme.toggle"), toggleTheme), h("button.tool.text", { label: t("lang.toggle"), lang: other, onclick: () => show(other) }, other === "en" ? "EN" : "中")),
		h("h1", bdi(found.title)), draw(found, { src })));
	drawn("report", { lang });
}

const given = new URLSearchParams(location.hash.slice(1));
if (given.get("theme")) document.documentElement.dataset.theme = given.get("theme");
show(given.get("lang") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
