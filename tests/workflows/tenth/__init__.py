"""Another installed app that brings a step kind along; nothing in Holdpoint names it."""
