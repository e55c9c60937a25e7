// Light, dark, or what the system says.

(() => {
  const button = document.getElementById("theme");
  const next = { system: "light", light: "dark", dark: "system" };
  let theme = "system";

  function turn(to) {
    theme = to in next ? to : "system";
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    memory.set("theme", theme);
  }

  button.addEventListener("click", () => turn(next[theme]));
  turn(memory.get("theme"));
})();
