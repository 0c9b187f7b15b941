"""What a module may declare, whether a step fits it, and what a workflow keeps of it. Pure."""
