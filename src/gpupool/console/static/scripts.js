// What a page has beyond all others names its script: data-script="editor". Those of the first page come
// with it (static_files.py); this is for what comes later. A script runs once, however often it is named.

export function loadScripts(root) {
  for (const element of root.querySelectorAll("[data-script]")) import(`./${element.dataset.script}.js`);
}
